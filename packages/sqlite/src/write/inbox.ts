/** Inboxes of branches. */

import { checkId } from "@statewright/core/adapter";
import { type Commit, type InboxMessage, type InboxMessageWrite, storeRules } from "@statewright/core/store";
import type { Reader } from "../read/reader.ts";
import type { ClaimedThread, NamespaceState } from "./claimed-thread.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Posts and delivers inbox messages; call inside a transaction. */
export class Inbox {
  readonly #rows: WriterRows;
  readonly #reader: Reader;

  constructor(rows: WriterRows, reader: Reader) {
    this.#rows = rows;
    this.#reader = reader;
  }

  /** Posts a message; returns the existing message for a known id. */
  post({ thread, branch, ...message }: InboxMessageWrite): InboxMessage {
    checkId("inbox message", message.id);
    const state = this.#rows.threads.get(thread);
    const namespace = this.#reader.namespaces.find(thread, branch);
    if (namespace === undefined || storeRules.isChildNamespace(namespace.name))
      throw storeRules.createUnknownBranchError(thread, branch ?? state.head);
    const known = this.#reader.inbox.find(thread, namespace.name, message.id);
    if (known !== undefined) return known;
    const row: InboxMessage = { ...message, branch: namespace.name };
    const { key, name } = namespace;
    this.#rows.inboxMessages.write({ thread, key, name, cipher: this.#reader.ciphers.get(thread) }, row);
    this.#rows.threads.addInput(state.key, "messages", 1);
    return row;
  }

  /** Marks messages as delivered to the run, restores them, or deletes them with the end of the run. */
  move(
    claimed: ClaimedThread,
    { name, key }: NamespaceState,
    { deliveredMessages, rolledBackRun, checkpoint, run }: Commit,
  ): void {
    const { inboxMessages } = this.#rows;
    const inbox = { thread: claimed.id, key, name, cipher: claimed.cipher };
    const receiver = checkpoint?.row.run ?? run?.id;
    if (deliveredMessages !== undefined && receiver !== undefined) {
      this.#countMessages(claimed, -inboxMessages.markTaken(inbox, deliveredMessages, receiver));
      claimed.mayHaveTakenMessages = true;
    }
    if (rolledBackRun !== undefined) this.#countMessages(claimed, inboxMessages.restore(inbox, rolledBackRun));
    if (run?.status === "done" || run?.status === "cancelled") inboxMessages.deleteTaken(key, run.id);
  }

  #countMessages(claimed: ClaimedThread, change: number): void {
    if (change === 0) return;
    this.#rows.threads.countOwn(claimed.key, "messages", change);
    claimed.messages += change;
  }
}
