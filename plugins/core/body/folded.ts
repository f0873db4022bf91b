/**
 * A name as the most lenient JSON reader matches it: in any case, with Unicode's simple folding (`ſ` is `s`, the Kelvin sign `k`). Go's
 * `encoding/json` matches names so (https://pkg.go.dev/encoding/json#Unmarshal), ASP.NET in any case, and the last one counts.
 */
export function folded (name: string): string {
  return name.toUpperCase().toLowerCase()
}
