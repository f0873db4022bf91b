/**
 * Whether an error means that the connection should be made anew: its server was a primary and is a replica now, and its address may lead
 * to the new primary. True at most once every `everyMs`, because a replica still reads.
 */
export function leavesReplica (everyMs: number): (error: Error) => boolean {
  let leftAt = -Infinity
  return ({ message }) => {
    const leaves = /\bREADONLY /.test(message) && performance.now() - leftAt >= everyMs
    if (leaves) leftAt = performance.now()
    return leaves
  }
}
