/**
 * Where requests and replies hold the texts of callers and models, and how requests set a model, as data for traces. Paths are lists of
 * object keys; `*` is each element of a list.
 */

export type FieldPath = readonly string[]

/** A text of the model in a reply, in an event of a stream, or in an element of an array. */
export interface TextPlace {
  readonly path: FieldPath
  /** The `type` of the documents that hold it; null for any. */
  readonly type: string | null
}

/** How a request sets the model: of several paths the first with a number counts. */
interface ModelSettings {
  readonly temperature: readonly FieldPath[]
  readonly topP: readonly FieldPath[]
  readonly topK: readonly FieldPath[]
  readonly seed: readonly FieldPath[]
}

export interface TextRules {
  /** Fields of a request with the caller's input, as a text, a message, or a list of them; the first that exists counts. */
  readonly input: readonly string[]
  /** The field of a message that holds its text or its parts. */
  readonly parts: string
  readonly output: readonly TextPlace[]
  readonly settings: ModelSettings
}

/** For requests in the common form, and replies without texts. */
export const plainText: Omit<TextRules, 'input'> = {
  parts: 'content',
  output: [],
  settings: { temperature: [['temperature']], topP: [['top_p']], topK: [['top_k']], seed: [['seed']] },
}
