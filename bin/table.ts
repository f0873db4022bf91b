export interface Column {
  readonly title: string
  /** Numbers stand at the right. */
  readonly numeric?: boolean
}

/** Lines of a table for a terminal. */
export function table (columns: readonly Column[], rows: ReadonlyArray<readonly string[]>): string[] {
  const titles = columns.map(({ title }) => title)
  const widths = titles.map((title, at) => rows.reduce((width, row) => Math.max(width, String(row[at]).length), title.length))
  const line = (cells: readonly string[]): string => cells.map((cell, at) => {
    const width = widths[at] ?? 0
    return columns[at]?.numeric === true ? cell.padStart(width) : cell.padEnd(width)
  }).join('  ').trimEnd()
  return [titles, ...rows].map(line)
}
