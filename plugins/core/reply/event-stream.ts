/** True for the headers of a reply that is an event stream (`text/event-stream`, in any case and with any parameter). */
export function isEventStream (headers: Readonly<Record<string, unknown>>): boolean {
  const type = headers['content-type']
  return type !== 'application/json' && /^\s*text\/event-stream\s*(?:;|$)/i.test(String(type))
}
