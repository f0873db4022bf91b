export interface Column {
  readonly title: string
  /** Numbers are aligned right. */
  readonly numeric?: boolean
}

/** Callers may invent model names: characters that would move the cursor, begin a line or change the text direction are replaced. */
export function shown (cell: string): string {
  return cell.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}

/** Lines of a table for a terminal. */
export function table (columns: readonly Column[], given: ReadonlyArray<readonly string[]>): string[] {
  const rows = given.map((row) => row.map(shown))
  const sized = columns.map((column, at) => {
    return { ...column, width: rows.reduce((width, row) => Math.max(width, String(row[at]).length), column.title.length) }
  })
  const line = (cells: readonly string[]): string => sized.map(({ numeric, width }, at) => {
    const cell = String(cells[at])
    return numeric === true ? cell.padStart(width) : cell.padEnd(width)
  }).join('  ').trimEnd()
  return [columns.map(({ title }) => title), ...rows].map(line)
}
