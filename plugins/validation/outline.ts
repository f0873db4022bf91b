import { isObject, type JsonObject } from '../core/body/json-object.js'

/** Maximum that is kept: values, and UTF-16 units of text in all and of one text. */
const maxValues = 2_000
const maxText = 256 * 1024
const maxOneText = 17 * 1024

/**
 * The beginning of a JSON document that is too large to transfer: each container in its order, plain values before nested ones, long texts
 * cut. `fields`, as paths of names, are kept wherever they are.
 */
export function outline (json: unknown, fields: ReadonlyArray<readonly string[]>): unknown {
  return copyOf(json, { values: maxValues, text: maxText }, only(json, fields))
}

/** The `fields` of a JSON document and nothing else, long texts cut. */
export function only (json: unknown, fields: ReadonlyArray<readonly string[]>): JsonObject {
  const kept: JsonObject = {}
  for (const path of fields) keep(kept, json, path)
  return kept
}

interface Room {
  values: number
  text: number
}

/** Does not count towards the maximum: there are few of them. */
function keep (target: JsonObject, source: unknown, [name = '', ...rest]: readonly string[]): void {
  if (!isObject(source) || !Object.hasOwn(source, name)) return
  const below: unknown = target[name]
  const shell = isObject(below) ? { ...below } : emptied(source[name])
  target[name] = shell
  if (rest.length > 0 && isObject(shell)) keep(shell, source[name], rest)
}

function emptied (value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, maxOneText)
  if (Array.isArray(value)) return []
  return isObject(value) ? {} : value
}

/** `kept`: what is already kept of the value. */
function copyOf (value: unknown, room: Room, kept: unknown): unknown {
  room.values -= 1
  if (typeof value === 'string') return cut(value, room)
  if (Array.isArray(value)) return copyOfList(value, room)
  return isObject(value) ? copyOfFields(value, room, isObject(kept) ? kept : {}) : value
}

function cut (text: string, room: Room): string {
  const taken = text.slice(0, Math.max(0, Math.min(maxOneText, room.text)))
  room.text -= taken.length
  return taken
}

function copyOfList (source: readonly unknown[], room: Room): unknown[] {
  const copies: unknown[] = []
  for (const value of source) {
    if (room.values <= 0) break
    copies.push(copyOf(value, room, undefined))
  }
  return copies
}

function copyOfFields (source: Readonly<JsonObject>, room: Room, target: JsonObject): JsonObject {
  const containers: string[] = []
  for (const name of Object.keys(source)) {
    if (room.values <= 0) break
    if (typeof source[name] === 'object') containers.push(name)
    else if (!Object.hasOwn(target, name)) set(target, name, source[name], room)
  }
  for (const name of containers) {
    if (room.values <= 0) break
    set(target, name, source[name], room)
  }
  return target
}

/** A name counts as text, too, before what stands under it. One that would change what an object is (`__proto__`) is left out. */
function set (target: JsonObject, name: string, value: unknown, room: Room): void {
  room.text -= name.length
  if (room.text < 0 || name === '__proto__') return
  target[name] = copyOf(value, room, Object.getOwnPropertyDescriptor(target, name)?.value)
}
