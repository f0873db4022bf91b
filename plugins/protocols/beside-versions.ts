/**
 * Paths of Google's that begin with no version: its sockets and its files. Where a mount of the whole site leads to Google, they would
 * reach it. https://ai.google.dev/api/live and https://ai.google.dev/api/files
 */
export const besideVersions = /^\/+(?:ws\/+google\.|(?:(?:resumable\/+)?upload|download)\/+v1(?:alpha|beta))/i
