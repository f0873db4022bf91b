/** The declarations that the entries of the package lead to, with their comments: what only our own files use is left out. */
import { rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'

/** Tabs for four spaces each: a tenth of the size. */
const indented = (text) => text.replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4))

/** Comments begin and end in lines that say something; those with code begin as they are, or it would lose its indentation. */
const closed = (text) => text
  .replaceAll(/(?<=\/\*\*)\s+\*(?= (?:(?!\*\/| {5})[^])*\*\/)/g, '')
  .replaceAll(/\s+\*\/$/gm, ' */')

/** Without semicolons, as the sources are; lines of comments keep theirs. */
const bare = (text) => text.replaceAll(/^(?!\s*\/?\*)(.*);$/gm, '$1')

/** What a comment says of a file that is not shipped: it stands by itself, before an empty line. */
const withoutFiles = (text) => text.replaceAll(/^\/\*\*(?:(?!\*\/)[^])*\*\/\n\n/gm, '')

/** Path and text of each file, of the `entries` that the compiler wrote: what two of them share gets a file of its own. */
export async function publicDeclarations (entries) {
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((path) => [path.slice(0, -'.d.ts'.length), path])),
    external: (id) => !/^[./]/.test(id),
    plugins: [dts()],
    onwarn: ({ message }) => { throw new Error(message) },
  })
  const { output } = await bundle.generate({
    entryFileNames: '[name].d.ts', chunkFileNames: 'dist/plugins/core/types.d.ts', minifyInternalExports: false,
  })
  await bundle.close()
  return output.map(({ fileName, code }) => [fileName, closed(bare(withoutFiles(indented(code))))])
}
