/** Ids of messages between clients and threads: branches prefix the ids of messages that they replace. */
import { fingerprint, toBranchPrefix } from "@statewright/core/adapter";

/** Converts between the ids of a client and the ids of the state. */
export interface MessageIds {
  /** Returns the id of a posted message in a thread: the id itself, or a hash of one outside of the grammar. */
  readonly toThreadId: (id: string) => string;
  /** Returns the id that a client knows: without the prefix of the branch that has edited the message. */
  readonly toClientId: (id: string) => string;
}

/**
 * Ids that clients may choose. Narrower than the grammar of ids: the ids of messages of models and of branches have
 * colons and dots, and no message of a client may take one.
 */
const clientId = /^[A-Za-z0-9_-]{1,64}$/;

/** Creates the conversion of a thread with these branches. */
export function createMessageIds(thread: string, branches: readonly string[]): MessageIds {
  const prefixes = branches
    .map(toBranchPrefix)
    .filter((prefix) => prefix !== "")
    .sort((left, right) => right.length - left.length);
  return {
    toThreadId: (id) => (clientId.test(id) ? id : `c:${fingerprint(`${thread}\n${id}`)}`),
    toClientId: (id) => {
      const prefix = prefixes.find((known) => id.startsWith(known));
      return prefix === undefined ? id : id.slice(prefix.length);
    },
  };
}
