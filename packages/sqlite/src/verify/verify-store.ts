/** Verification of the file: each checkpoint chain from its anchor on, and each checksum. */
import { isStatewrightError } from "@statewright/core";
import type { Read, Verifier } from "./verifier.ts";
import type { Fault, VerifyReport } from "./verify-report.ts";

/** Verifies one thread, or all; skips threads deleted meanwhile. Throws `unknown_thread`. */
export async function verifyStore(verifier: Verifier, read: Read, thread: string | undefined): Promise<VerifyReport> {
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
