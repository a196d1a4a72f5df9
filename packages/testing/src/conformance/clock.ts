/** Conformance tests of the clock of a store. */
import { assertEqual } from "./assert.ts";
import { createClaimRequest } from "./store-rows.ts";
import { defineSharedStoreTest, type StoreTest } from "./store-test.ts";

export const clockTests: readonly StoreTest[] = [
  defineSharedStoreTest(
    "a store with a clock gives each claim its time, and its owners read one clock; a store without gives none [PK4]",
    async ({ store, peer }) => {
      const other = await peer();
      const before = await store.now?.();
      const claim = await store.claim(createClaimRequest("t"));
      const after = await other.now?.();
      if (before === undefined || after === undefined) {
        assertEqual(
          [before, claim.at, after],
          [undefined, undefined, undefined],
          "the times of a store without a clock",
        );
        return;
      }
      const at = claim.at ?? Number.NaN;
      assertEqual([before <= at, at <= after], [true, true], `the order of the times ${before}, ${at} and ${after}`);
    },
  ),
];
