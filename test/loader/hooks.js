/**
 * What a run of the tests costs most is what each of its files loads before the first test. So these hooks do only what this project
 * needs: `./x.js` in a `.ts` file may be `./x.ts`, and a `.ts` file is stripped of its types, once for each content of it.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const settings = {
  jsc: {
    target: 'es2023',
    parser: { syntax: 'typescript' },
    transform: { useDefineForClassFields: true },
    keepClassNames: true,
    experimental: { keepImportAttributes: true },
  },
  module: { type: 'es6' },
  sourceMaps: 'inline',
  inlineSourcesContent: true,
  swcrc: false,
}

const cache = new URL('../../node_modules/.cache/transpiled/', import.meta.url)
const salt = JSON.stringify(settings) + readFileSync(new URL('../../node_modules/@swc/core/package.json', import.meta.url), 'utf8')

const tap = new URL('tap.js', import.meta.url).href

export async function resolve (specifier, context, nextResolve) {
  if (specifier === 'tap') return { url: `${tap}?of=${encodeURIComponent(context.parentURL)}`, format: 'module', shortCircuit: true }
  if (/^\.\.?\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
    const url = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
    if (existsSync(url)) return { url: url.href, format: 'module', shortCircuit: true }
  }
  return await nextResolve(specifier, context)
}

export async function load (url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return await nextLoad(url, context)
  const path = fileURLToPath(url)
  return { format: 'module', source: await transpiled(path, await readFile(path, 'utf8')), shortCircuit: true }
}

async function transpiled (path, source) {
  // The path stands in the source map.
  const kept = new URL(`${createHash('sha256').update(`${salt}\n${path}\n${source}`).digest('hex')}.js`, cache)
  try {
    return await readFile(kept, 'utf8')
  } catch {
    const { transform } = await import('@swc/core')
    const { code } = await transform(source, { ...settings, filename: path })
    keep(kept, code)
    return code
  }
}

/** Test files run side by side: none reads what another one has half written. */
function keep (kept, code) {
  mkdirSync(cache, { recursive: true })
  const half = new URL(`${kept.href}.${process.pid}`)
  writeFileSync(half, code)
  renameSync(half, kept)
}
