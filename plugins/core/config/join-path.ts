/** `joinPath('keys', 0)` is `keys[0]`, `joinPath('groups.chat', 'limits')` is `groups.chat.limits`. */
export function joinPath (path: string, part: string | number): string {
  if (typeof part === 'number') return `${path}[${part}]`
  return path === '' ? part : `${path}.${part}`
}
