/**
 * Which files the tests are to cover: every source file, by whatever test. What child processes run from `dist` is a build of the same.
 * Without coverage: none, or each test would still count every call that it makes.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { argv } from 'node:process'

const sources = ['plugins', 'bin'].flatMap((folder) => {
  return readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.ts')).map((file) => join(folder, file))
})

export default () => argv.includes('--disable-coverage') ? null : sources
