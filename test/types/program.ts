/** What the package exports, as the compiler sees it. To make this takes seconds: it is made once. */
import ts from 'typescript'

export const root = new URL('../../', import.meta.url).pathname

export const entries = { 'fastify-llm-gateway': 'plugins/index.ts', 'fastify-llm-gateway/state': 'plugins/state/index.ts' }

const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)

export const program = ts.createProgram(Object.values(entries).map((path) => root + path), { ...options, noEmit: true })
export const checker = program.getTypeChecker()
