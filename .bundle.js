/**
 * Writes the JavaScript that is shipped: few files instead of one per source, because opening and linking 140 small modules was
 * half of what the gateway added to the start of an app. What is loaded on use stays a file of its own, other packages stay
 * outside. Nothing is shortened and each part names its source: the stack traces of an operator are to be read.
 */
import { rolldown } from 'rolldown'

const bundle = await rolldown({
  input: {
    'plugins/index': './plugins/index.ts',
    'plugins/state/index': './plugins/state/index.ts',
    'bin/llm-gateway': './bin/llm-gateway.ts',
  },
  platform: 'node',
  // Of Node or of another package; a file of ours begins with a dot or is absolute.
  external: /^(?:node:)?@?[a-z][\w./-]*$/,
  // Such as a name that is not exported, which would be left for the start to find out.
  onLog (level, log) {
    if (level === 'warn') throw new Error(log.message)
  },
})

await bundle.write({
  dir: 'dist',
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name].js',
  minifyInternalExports: false,
  // One other letter would double what the file takes in memory.
  charset: 'ascii',
})
await bundle.close()
