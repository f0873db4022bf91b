/** What the suite needs to know of one client library, and what it does with it. */
export interface Client {
  /** Package and major, as people say it. */
  readonly name: string
  /** Folder of the package under `node_modules`, for its version and the Node.js that it declares. */
  readonly folder: string
  /** Protocol that its calls use. */
  readonly protocol: 'chat_completions' | 'responses' | 'messages' | 'generate_content'
  /** The option or variable that takes the base address. */
  readonly setting: string
  /** What its own documents put behind the origin. */
  readonly documented: '' | '/v1' | '/v1beta'
  /** Whether it tries again by itself after 429 and 529. */
  readonly retries: boolean
  /** How it tells a failure: class names by status, where it has any. */
  readonly classes: Readonly<Record<number, string>>
  /** Situations that the library itself cannot show, with the reason: skipped by name. */
  readonly deaf?: Readonly<Record<string, string>>
  readonly connect: (baseUrl: string, key: string) => Session
}

export interface Session {
  /** One plain call; the text of the reply. */
  readonly call: () => Promise<string>
  /** One stream; the pieces of text. Throws what the library throws, or what it hands over as an error event. */
  readonly stream: (signal?: AbortSignal) => AsyncIterable<string>
}

export const model = 'model-1'
export const prompt = 'Say hi.'
