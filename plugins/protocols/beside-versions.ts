/**
 * Google's paths that begin without a version: its sockets and its files. A mount that forwards a whole site to Google would serve them.
 * https://ai.google.dev/api/live and https://ai.google.dev/api/files
 */
export const besideVersions = /^\/+(?:ws\/+google\.|(?:(?:resumable\/+)?upload|download)\/+v1(?:alpha|beta))/i
