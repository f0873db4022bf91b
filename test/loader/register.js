/** Lets Node run the TypeScript files of this project: `node --import=./test/loader/register.js FILE`. */
import { register } from 'node:module'

register('./hooks.js', import.meta.url)
