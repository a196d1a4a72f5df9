/**
 * Entry `statewright/store`: what a store is given (encryption, codecs, artifact bodies, relays and caches), and the
 * rows, rules and types for authors of stores.
 */
export {
  type Encryption,
  type EncryptionKey,
  encryptStore,
  folderArtifactBodies,
  type SocketRelay,
  type SocketRelayOptions,
  socketRelay,
} from "@statewright/sqlite";
export * from "./browser-store.ts";
