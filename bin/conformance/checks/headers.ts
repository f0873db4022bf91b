/** Headers in which requests of several checks differ from plain ones. */

/** No credential of any family. */
export const nobody = { authorization: undefined, 'x-api-key': undefined, 'x-goog-api-key': undefined }

export const upgrade = {
  'content-type': undefined,
  connection: 'upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'a2l0LWtpdC1raXQtMTYhIQ==',
}
