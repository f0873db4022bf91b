import type { Gateway } from '../core/gateway.js'
import { endsInVersion } from '../core/url/segments.js'

/**
 * Mounts that send what stands below them to a version, and below which nothing is taken for a model request. They may be for another
 * server; where they are not, anybody reaches the provider there. To be asked once all plugins are there.
 */
export function openMounts (gateway: Gateway): string[] {
  const open = gateway.mountTargets.all.filter(({ prefix, target, isAdapted }) => {
    return endsInVersion(target) && !isAdapted && isUnguarded(gateway, prefix)
  })
  return open.map(({ prefix, target }) => {
    return `the mount at ${prefix} sends to ${target} what is no model request where it stands, and nobody is asked for a key there: ` +
      'where that is a model provider, spread proxyOptions() into the mount, and give the gateway its prefix'
  })
}

function isUnguarded ({ mounts, resolve }: Gateway, prefix: string): boolean {
  return resolve('POST', `${prefix}/any`, {}) === null && !mounts.has(`${prefix}/*`)
}
