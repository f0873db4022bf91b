/** The message of an error, without its name. */
export function messageOf (error: unknown): string {
  return String(error).replace(/^\w*Error(?: \[\w+\])?: /, '')
}
