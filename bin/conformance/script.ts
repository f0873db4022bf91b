/** A reply of the far side. */
export interface Script {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Written one after the other. */
  readonly pieces: ReadonlyArray<string | Buffer>
  /** Awaited before piece `index`. */
  readonly before?: (index: number) => unknown
  /** `cut`: the socket closes after the last piece. `reset`: before the first byte of a reply. Default: a clean end. */
  readonly then?: 'cut' | 'reset'
}
