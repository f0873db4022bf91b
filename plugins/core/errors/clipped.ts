/** The longest of a caller's own words, such as a key or a model, that an error repeats: they may be as long as a body. */
const maxWords = 200

export function clipped (words: string): string {
  return words.length <= maxWords ? words : `${words.slice(0, maxWords)}...`
}
