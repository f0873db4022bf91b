export interface Column {
  readonly title: string
  /** Numbers stand at the right. */
  readonly numeric?: boolean
}

/** Lines of a table for a terminal. */
export function table (columns: readonly Column[], rows: ReadonlyArray<readonly string[]>): string[] {
  const sized = columns.map((column, at) => {
    return { ...column, width: rows.reduce((width, row) => Math.max(width, String(row[at]).length), column.title.length) }
  })
  const line = (cells: readonly string[]): string => sized.map(({ numeric, width }, at) => {
    const cell = String(cells[at])
    return numeric === true ? cell.padStart(width) : cell.padEnd(width)
  }).join('  ').trimEnd()
  return [columns.map(({ title }) => title), ...rows].map(line)
}
