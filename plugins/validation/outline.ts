import { isObject } from './json.js'

/** Most that is kept: values, and UTF-16 units of text in all and of one text. */
const maxValues = 2_000
const maxText = 256 * 1024
const maxOneText = 17 * 1024

type Container = Record<string, unknown> | unknown[]

/**
 * The beginning of a JSON document whose whole would take too long to hand on: each container in its order, plain values
 * before those that hold others, long texts cut. `fields`, as paths of names, are kept wherever they stand.
 */
export function outline (json: unknown, fields: ReadonlyArray<readonly string[]>): unknown {
  const room = { values: maxValues, text: maxText }
  const kept = shellOf(json, room)
  for (const path of fields) keep(kept, json, path)
  if (isContainer(kept)) fill(kept, json, room)
  return kept
}

interface Room {
  values: number
  text: number
}

/** The value without what it holds. */
function shellOf (value: unknown, room: Room): unknown {
  room.values -= 1
  if (typeof value === 'string') return cut(value, room)
  if (Array.isArray(value)) return []
  return isObject(value) ? {} : value
}

function cut (text: string, room: Room): string {
  const kept = text.slice(0, Math.max(0, Math.min(maxOneText, room.text)))
  room.text -= kept.length
  return kept
}

function keep (target: unknown, source: unknown, [name = '', ...rest]: readonly string[]): void {
  if (!isRecord(target) || !isObject(source) || !Object.hasOwn(source, name)) return
  // Outside of what there is room for: there are few of them.
  if (!Object.hasOwn(target, name)) target[name] = shellOf(source[name], { values: 1, text: maxOneText })
  if (rest.length > 0) keep(target[name], source[name], rest)
}

function fill (target: Container, source: unknown, room: Room): void {
  if (Array.isArray(target)) fillList(target, source, room)
  else fillRecord(target, source, room)
}

function fillList (target: unknown[], source: unknown, room: Room): void {
  if (!Array.isArray(source)) return
  for (const value of source) {
    if (room.values <= 0) return
    const kept = shellOf(value, room)
    target.push(kept)
    if (isContainer(kept)) fill(kept, value, room)
  }
}

function fillRecord (target: Record<string, unknown>, source: unknown, room: Room): void {
  if (!isObject(source)) return
  const containers: string[] = []
  for (const name of Object.keys(source)) {
    if (room.values <= 0) break
    if (isContainer(source[name])) containers.push(name)
    else if (!Object.hasOwn(target, name)) set(target, name, shellOf(source[name], room), room)
  }
  for (const name of containers) {
    if (room.values <= 0) return
    if (!Object.hasOwn(target, name)) set(target, name, shellOf(source[name], room), room)
    // Never what it inherits.
    const kept = Object.hasOwn(target, name) ? target[name] : null
    if (isContainer(kept)) fill(kept, source[name], room)
  }
}

/** A name has its length of the room, too, and one that would change what an object is has no place in another. */
function set (target: Record<string, unknown>, name: string, value: unknown, room: Room): void {
  room.text -= name.length
  if (room.text >= 0 && name !== '__proto__') target[name] = value
}

function isContainer (value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

function isRecord (value: unknown): value is Record<string, unknown> {
  return isContainer(value) && !Array.isArray(value)
}
