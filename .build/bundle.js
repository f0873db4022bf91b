/**
 * Makes one file of each folder of `plugins`: an app that registers the gateway opens some twenty files instead of two hundred, which was
 * most of its start. What is run or imported by its path stays a file: the command line, the entries of the package, and threads.
 */
import { readdirSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { rollup } from 'rollup'

/** The folder of `plugins` that a module is in, undefined for any other. */
const folderOf = (path) => /^plugins\/([^/]+)\/./.exec(path)?.[1]

const isEntry = (path) => folderOf(path) === undefined || /(?:^plugins\/state\/index|-thread)\.js$/.test(path)

const withoutSuffix = (path) => path.slice(0, -'.js'.length)

/** The file, without its suffix, that a module is put into. A thread's file is beside the bundle that starts it. */
function placeOf (path) {
  const folder = folderOf(path)
  if (!isEntry(path)) return `plugins/${folder}/${folder}`
  return folder === undefined ? withoutSuffix(path) : `plugins/${folder}/${basename(path, '.js')}`
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
