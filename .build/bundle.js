/**
 * Makes one file of each folder of `plugins`: an app that registers the gateway opens some twenty files instead of two hundred, which was
 * most of its start. What is run or imported by its path stays a file: the commands, the entries of the package, and threads.
 */
import { readdirSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { rollup } from 'rollup'

const isThread = (path) => path.endsWith('-thread.js')

const isEntry = (path) => isThread(path) || path === 'plugins/state/index.js' || folderOf(path) === undefined

/** The folder that makes one file, such as `plugins/auth`; undefined for a module of no such folder, and for the kit's help. */
const folderOf = (path) => /^(?:plugins\/[^/]+|bin\/(?:conformance(?!\/help\.)|keys|sums|usage))(?=\/)/.exec(path)?.[0]

/** The file, without its suffix, that a module is put into. A thread's file is beside the bundle that starts it. */
function placeOf (path) {
  const folder = folderOf(path)
  if (!isEntry(path)) return `${folder}/${basename(folder)}`
  return isThread(path) && folder !== undefined ? `${folder}/${basename(path, '.js')}` : path.slice(0, -'.js'.length)
}

/** Path and code of each file that remains of the modules in `root`. */
export async function bundled (root) {
  const modules = readdirSync(root, { recursive: true }).filter((name) => name.endsWith('.js'))
  const bundle = await rollup({
    input: Object.fromEntries(modules.filter(isEntry).map((path) => [placeOf(path), join(root, path)])),
    external: (id) => !/^[./]/.test(id),
    onwarn: ({ code, message }) => { if (code !== 'EMPTY_BUNDLE') throw new Error(message) },
  })
  const { output } = await bundle.generate({
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    manualChunks: (id) => placeOf(relative(root, id)),
    hoistTransitiveImports: false,
    generatedCode: { constBindings: true },
    minifyInternalExports: false,
  })
  await bundle.close()
  // A file that declared only types is empty.
  return output.filter(({ code }) => code.trim() !== '').map(({ fileName, code }) => [join(root, fileName), code])
}
