/** Ciphers of the threads of an encrypted file. */
import type { Payload, StoreCipher, ThreadCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

function prepareStatements(db: Database) {
  return {
    secretOfThread: db.prepare<[string], Payload | null>("SELECT secret FROM threads WHERE id = ?").pluck(),
  };
}

/** Ciphers of threads, with the cipher of the last thread cached. */
export class ThreadCiphers {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #storeCipher: StoreCipher | undefined;
  #current: { readonly thread: string; readonly cipher: ThreadCipher | undefined } | undefined;

  constructor(db: Database, storeCipher: StoreCipher | undefined) {
    this.#sql = prepareStatements(db);
    this.#storeCipher = storeCipher;
  }

  /** Returns the cipher of a thread; cached until `forget`, so that a page of rows loads the keys once. */
  get(thread: string): ThreadCipher | undefined {
    if (this.#storeCipher === undefined) return undefined;
    const secret = this.#sql.secretOfThread.get(thread);
    if (secret === undefined) return undefined;
    if (this.#current?.thread !== thread)
      this.#current = { thread, cipher: this.#storeCipher.getThreadCipher(thread, secret) };
    return this.#current.cipher;
  }

  /** Returns the encrypted secret of a thread; null in a plain thread, undefined for an unknown thread. */
  getSecret(thread: string): Payload | null | undefined {
    return this.#sql.secretOfThread.get(thread);
  }

  /** Discards the cached cipher: keys may have changed. */
  forget(): void {
    this.#current = undefined;
  }
}
