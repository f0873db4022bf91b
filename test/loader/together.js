/** Runs test files in one process, one after the other: to load what they test takes longer than most of them. */
import { createRequire } from 'node:module'

const fileMs = 200_000
const endMs = 30_000

/** What a file is given for the runner's library, by the address of the file. */
const tests = new Map()

export const testOf = (address) => tests.get(address)

/** Each file is a test by its name, and has what it does at its top level in it: its tests, its teardown. */
export async function together (files) {
  const { default: root } = createRequire(import.meta.url)('tap')
  for (const file of files) {
    const { href } = new URL(`../../${file}`, import.meta.url)
    await root.test(file, { timeout: fileMs }, async (t) => {
      tests.set(href, t)
      await import(href)
    })
  }
  // The runner would cut it, too, but later, and not say which files there were.
  setTimeout(() => {
    console.error(`One of ${files.join(', ')} left something open: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit(1)
  }, endMs).unref()
}
