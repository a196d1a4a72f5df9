/**
 * Place of artifact bodies outside of a store, such as a folder or an object store. The store keeps the rows, and puts
 * each body before the commit that names it. Called by one store at a time for a body; equal bodies have equal keys.
 */
export interface ArtifactBodies {
  /**
   * Stores a body; replaces an existing one at once. Resolves when the body survives a power failure.
   *
   * @param key 64 hexadecimal digits: the SHA-256 of the body; in an encrypted store an HMAC of it.
   * @param body Bytes of the body; encrypted in an encrypted store.
   */
  put(key: string, body: Uint8Array): Promise<void>;
  /** Reads a whole body; undefined for an unknown key. */
  read(key: string): Promise<Uint8Array | undefined>;
  /** Deletes a body; an unknown key is no error. A resolved deletion must not take effect later. */
  delete(key: string): Promise<void>;
}
