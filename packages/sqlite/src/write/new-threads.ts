/** Threads as rows of their own: creation before the first run, and changes of title and metadata. */
import { storeRules, type ThreadPatch, type ThreadWrite, threadRules } from "@statewright/core/store";
import type { Reader } from "../read/reader.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Creates and changes threads; call inside a transaction. */
export class NewThreads {
  readonly #rows: WriterRows;
  readonly #reader: Reader;

  constructor(rows: WriterRows, reader: Reader) {
    this.#rows = rows;
    this.#reader = reader;
  }

  /** Creates a thread with its branch `main`; with `ifExists: "keep"` an existing thread is unchanged. */
  create(write: ThreadWrite): void {
    const { thread: id, at, keySalt: salt = "", ifExists } = write;
    const { threads, namespaces, details: detailRows } = this.#rows;
    const known = threads.find(id);
    if (known !== undefined) {
      if (ifExists !== "keep") throw storeRules.createThreadExistsError(id);
      threadRules.checkTenant("createThread", { id, tenant: known.tenant ?? undefined }, write.tenant);
      return;
    }
    const details = threadRules.toThreadDetails(write);
    const head = "main";
    const { key } = threads.create({ id, salt, head, graph: null, at, details });
    detailRows.put({ key, id }, this.#reader.ciphers.get(id), details);
    namespaces.add(key, head);
  }

  /** Changes the title and the metadata of a thread. Throws `unknown_thread`. */
  change(id: string, patch: ThreadPatch): void {
    const { threads, details: detailRows } = this.#rows;
    const cipher = this.#reader.ciphers.get(id);
    const { key, details } = detailRows.get(id, cipher);
    detailRows.put({ key, id }, cipher, threadRules.applyThreadPatch(details, patch));
    threads.touch(key, patch.at);
  }
}
