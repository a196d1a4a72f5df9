/** Verification of a store: each checkpoint chain from its anchor on, and each checksum. */
import { isStatewrightError } from "@statewright/core";
import type { Fault, VerifyReport } from "@statewright/core/store";

/** Runs a read in a single read transaction. */
export type Read = <Value>(operation: () => Value) => Promise<Value>;

/** Checks of a store, each a few rows per read. */
export interface StoreVerifier {
  /** Returns findings about the structure of the database; empty without damage. */
  checkStructure(): readonly string[];
  /** Key of the newest thread; 0 without threads. */
  getNewestThreadKey(): number;
  /** Lists some threads after a key, up to a key, in key order. */
  listThreads(after: number, until: number): readonly { readonly key: number; readonly id: string }[];
  /** Verifies the items of the long-term store. */
  verifyItems(read: Read, onFault: (fault: Fault) => void): Promise<void>;
  /** Verifies the outlines of all graph versions. */
  verifyOutlines(read: Read, onFault: (fault: Fault) => void): Promise<void>;
  /** Verifies a single thread; returns its number of checkpoints and artifact bodies. Throws `unknown_thread`. */
  verifyThread(
    id: string,
    read: Read,
    onFault: (fault: Fault) => void,
  ): Promise<Pick<VerifyReport, "checkpoints" | "artifacts">>;
}

/** Verifies a single thread, or all; skips threads deleted meanwhile. Throws `unknown_thread`. */
export async function verifyStore(
  verifier: StoreVerifier,
  read: Read,
  thread: string | undefined,
): Promise<VerifyReport> {
  const faults = new Map<string, Fault>();
  const addFault = (fault: Fault): void => {
    faults.set(JSON.stringify(fault), fault);
  };
  let [threads, checkpoints, artifacts] = [0, 0, 0];
  const verifyOne = async (id: string): Promise<void> => {
    const counts = await verifier.verifyThread(id, read, addFault);
    checkpoints += counts.checkpoints;
    artifacts += counts.artifacts;
    threads += 1;
  };
  if (thread === undefined) for (const what of await read(() => verifier.checkStructure())) addFault({ what });
  if (thread === undefined) await verifier.verifyItems(read, addFault);
  if (thread === undefined) await verifier.verifyOutlines(read, addFault);
  if (thread !== undefined) await verifyOne(thread);
  const until = await read(() => verifier.getNewestThreadKey());
  for (let after = 0; thread === undefined; ) {
    const from = after;
    const page = await read(() => verifier.listThreads(from, until));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.key;
    for (const { id } of page) {
      try {
        await verifyOne(id);
      } catch (error) {
        if (!isStatewrightError(error, "unknown_thread")) throw error;
      }
    }
  }
  return { threads, checkpoints, artifacts, faults: [...faults.values()] };
}
