/** How the replies of one protocol tell their token usage, as data for the readers in `plugins/usage/`. */
export interface UsageRules {
  readonly name: string
}
export const chatUsage: UsageRules = { name: 'chat' }
export const responsesUsage: UsageRules = { name: 'responses' }
export const imagesUsage: UsageRules = { name: 'images' }
export const embeddingsUsage: UsageRules = { name: 'embeddings' }
export const messagesUsage: UsageRules = { name: 'messages' }
export const generateContentUsage: UsageRules = { name: 'generate_content' }
