/**
 * Functions for `credential`: each asks for one token. The gateway asks them one question at a time, keeps an answer until two
 * minutes before its end, and asks anew at once where the provider refuses it.
 */
const {
  ENTRA_URL = 'https://login.microsoftonline.com', ENTRA_TENANT, ENTRA_CLIENT_ID, ENTRA_CLIENT_SECRET,
  METADATA_URL = 'http://metadata.google.internal',
} = process.env

/** Entra ID, client credentials (RFC 6749 4.4). */
export async function entraToken () {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: ENTRA_CLIENT_ID,
    client_secret: ENTRA_CLIENT_SECRET,
    scope: 'https://cognitiveservices.azure.com/.default',
  })
  return secretOf(await fetch(`${ENTRA_URL}/${ENTRA_TENANT}/oauth2/v2.0/token`, { method: 'POST', body }))
}

/** The service account of a machine, a pod or a function at Google Cloud. */
export async function metadataToken () {
  const url = `${METADATA_URL}/computeMetadata/v1/instance/service-accounts/default/token`
  return secretOf(await fetch(url, { headers: { 'metadata-flavor': 'Google' } }))
}

async function secretOf (reply) {
  if (!reply.ok) throw new Error(`no token: ${reply.status}`)
  const { access_token: secret, expires_in: seconds } = await reply.json()
  return { secret, expiresAt: Date.now() + seconds * 1_000 }
}
