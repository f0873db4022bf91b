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
