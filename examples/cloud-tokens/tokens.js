/**
 * Functions for `credential`: each asks for one token. The gateway asks them one question at a time, keeps an answer until two
 * minutes before its end, and asks anew at once where the provider refuses it. The libraries keep tokens, too, the one that was
 * refused among them: so each question has a credential of its own.
 */
import { DefaultAzureCredential } from '@azure/identity'
import { GoogleAuth } from 'google-auth-library'

// An authority of one's own, as private clouds have it, is not known to the public directory of authorities.
const { AZURE_AUTHORITY_HOST: authorityHost } = process.env
const authority = authorityHost === undefined ? {} : { authorityHost, disableInstanceDiscovery: true }

/** Entra ID: a client with its secret or certificate, a workload or a managed identity, whichever the environment has. */
export async function entraToken () {
  const { token, expiresOnTimestamp } = await new DefaultAzureCredential(authority).getToken('https://cognitiveservices.azure.com/.default')
  return { secret: token, expiresAt: expiresOnTimestamp }
}

/** Google Cloud: the service account of the machine, the pod or the function, or the file in GOOGLE_APPLICATION_CREDENTIALS. */
export async function vertexToken () {
  const client = await new GoogleAuth({ scopes: 'https://www.googleapis.com/auth/cloud-platform' }).getClient()
  const { token } = await client.getAccessToken()
  return { secret: token, expiresAt: client.credentials.expiry_date }
}
