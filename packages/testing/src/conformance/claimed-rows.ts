/** Conformance tests of claims that bring the rows of their newest checkpoint. */
import type { Store } from "@statewright/core";
import type { Claim } from "@statewright/core/store";
import { assertEqual } from "./assert.ts";
import {
  createClaimRequest,
  createDelta,
  createEffect,
  createInterrupt,
  forkThread,
  releaseThread,
  startThread,
} from "./store-rows.ts";
import { defineStoreTest, type StoreTest } from "./store-test.ts";

export const claimedRowTests: readonly StoreTest[] = [
  defineStoreTest(
    "a claim with loads brings the state, the journal and the interrupts of its newest checkpoint, as the reads return them [PK6]",
    async ({ store }) => {
      const fresh = await claimWithRows(store);
      assertEqual(fresh.loaded, undefined, "the rows of a thread without a checkpoint");
      await releaseThread(store, "t", fresh);
      const thread = await startThread(store, "t");
      await thread.writeStep(1, [
        createDelta("list", "append", "[1]", { base: true }),
        createDelta("name", "replace", '"a"'),
      ]);
      await thread.commit({
        effects: [
          createEffect({ step: 1, outcome: "1" }),
          createEffect({ step: 1, key: "paid", kind: "tool", effect: "once", outcome: "2" }),
        ],
      });
      await thread.writeStep(2, [createDelta("list", "append", "[2]")]);
      const answered = createInterrupt({ id: "i1", step: 1, answer: "true", answeredAt: 130 });
      await thread.commit({
        effects: [createEffect({ step: 2, state: "started" })],
        interrupts: [answered, createInterrupt({ id: "i2", step: 2 })],
        release: true,
      });
      await checkRows(store, {}, { isOnlyBranch: true });
      await forkThread(store, { branch: "b", from: 1, deltas: [createDelta("name", "replace", '"b"')] });
      await checkRows(store, { branch: "main" }, { isOnlyBranch: false });
      await checkRows(store, { branch: "b" }, { isOnlyBranch: false });
    },
  ),
];

function claimWithRows(store: Store, more: Parameters<typeof createClaimRequest>[1] = {}): Promise<Claim> {
  return store.claim(createClaimRequest("t", { loads: true, ...more }));
}

/** Compares the rows of two claims, one of which may be written later, with the reads of the store. */
async function checkRows(
  store: Store,
  more: Parameters<typeof createClaimRequest>[1],
  { isOnlyBranch }: { readonly isOnlyBranch: boolean },
): Promise<void> {
  for (const startsRun of [false, true]) {
    const claim = await claimWithRows(store, { ...more, startsRun });
    const { head, loaded, branch } = claim;
    assertEqual(
      loaded,
      loaded && {
        state: await store.state("t", head?.id ?? 0),
        effects: await store.effects("t", branch, head?.step),
        interrupts: await store.interrupts("t", branch),
        isOnlyBranch,
      },
      `the rows of the claim of ${branch}`,
    );
    await releaseThread(store, "t", claim);
  }
}
