/** Entry `@statewright/host/access`: callers, tokens and host names of HTTP servers. Imports nothing of Node. */
export {
  type Authenticate,
  type AuthenticationOptions,
  anyone,
  createAuthenticator,
  type TokenGrant,
} from "./access/authenticator.ts";
export { type Caller, checkCaller } from "./access/caller.ts";
export { getHostName, isLoopbackAddress, loopback, parseHostName } from "./access/host-names.ts";
export { createToken, createTokenFinder, getBearerToken, getToken, type TokenOwner } from "./access/tokens.ts";
