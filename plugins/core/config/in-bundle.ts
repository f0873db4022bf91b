import { OptionError } from './options.js'

/** Registers the parts of the bundle; a wrong option of a part is told by the name that it has in the bundle. */
export async function inBundle (registered: Promise<void>): Promise<void> {
  try {
    await registered
  } catch (error) {
    throw error instanceof OptionError ? new OptionError(placeOf(error.path), error.words) : error
  }
}

function placeOf (path: string): string {
  return path.replace(/^(?:paths\.(?=prefix$)|upstreams\.(?=notes$))/, '').replace(/^costs\.(?!header)/, 'prices.')
}
