/** FNV-1a over the UTF-16 units of all texts in order: 32 bits, the same in each process. */
export function textHash (...texts: readonly string[]): number {
  let hash = 0x811c9dc5
  for (const text of texts) {
    for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  }
  return mixed(hash)
}

/**
 * The score of a place for one key: the highest wins. Each place gets its share of the keys by weight, and if one goes away
 * only its own keys move (weighted rendezvous hashing: Schindelhauer and Schomaker, SPAA 2005).
 */
export function score (key: number, place: number, weight: number): number {
  return -weight / Math.log((mixed(key ^ mixed(place + 0x9e3779b9)) + 1) / 0x1_0000_0001)
}

/** The finalizer of MurmurHash3: each bit of the result depends on each bit given. */
function mixed (given: number): number {
  let hash = given
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
