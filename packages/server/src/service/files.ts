/** Uploaded files of a thread, until a message names them. */

/** Uploaded file. */
export interface FileView {
  readonly id: string;
  readonly name?: string | undefined;
  readonly mimeType: string;
  readonly bytes: number;
  /** Time of the deletion, in milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** File to save. */
export interface FileWrite {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
  readonly name?: string | undefined;
}

/** Acts on the files of a thread. */
export interface FileActs {
  /** Saves a file for messages of a thread. The same file again returns the same id. Creates no thread. */
  saveFile(thread: string, file: FileWrite): Promise<FileView>;
  /**
   * Returns a value whose blocks with `uploaded: { thread: id }` hold the bytes of the file in place of the id. Throws
   * `unknown_file` (422) for a file that this thread does not have.
   */
  insertFiles<Value>(thread: string, value: Value): Promise<Value>;
}
