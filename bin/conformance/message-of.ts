/** What an error says, without its name. */
export function messageOf (error: unknown): string {
  return String(error).replace(/^\w*Error(?: \[\w+\])?: /, '')
}
