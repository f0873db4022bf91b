import { OptionError } from './options.js'

/** Registers the parts of the bundle; a wrong option of a part is told by the name that it has in the bundle's `options`. */
export async function inBundle (registered: Promise<void>, options: unknown): Promise<void> {
  try {
    await registered
  } catch (error) {
    throw error instanceof OptionError ? new OptionError(placeOf(error.path, options), error.words) : error
  }
}

function placeOf (path: string, options: unknown): string {
  const [part = '', field = ''] = path.split('.')
  // It stands where the part says, such as an upstream that is called `notes`.
  if (Object.hasOwn(Object(Reflect.get(Object(options), part)), field)) return path
  return path.replace(/^(?:paths\.(?=prefix$)|upstreams\.(?=(?:notes|health)$))/, '').replace(/^costs\./, 'prices.')
}

/** What a part takes when it stands alone, and has another place in the bundle. */
const elsewhere = {
  paths: ['prefix'], auth: ['groups', 'keys', 'lookup', 'store'], forward: ['routes'], prices: ['header', 'factors'],
}

/** Throws `LLM_GATEWAY_OPTION` for an option of a part that the bundle would overwrite, or give half of its effect. */
export function checkPlaces (options: object): void {
  for (const [part, names] of Object.entries(elsewhere)) {
    const given: object = Object(Reflect.get(options, part))
    const name = names.find((name) => Reflect.get(given, name) !== undefined)
    if (name !== undefined) throw new OptionError(`${part}.${name}`, `stands outside of ${part}`)
  }
}
