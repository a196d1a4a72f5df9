/** Effects of the current superstep. */
import type { Redactor } from "../../../base/redaction/redactor.ts";
import type { World } from "../../../base/world.ts";
import type { Codec } from "../../../state/codec.ts";
import type { LedgerBook } from "../ledger-book.ts";
import type { LongTermView } from "../long-term-view.ts";
import type { Persistence } from "./persistence.ts";

/** Journal of a session: the effects of the current superstep, in memory and in the store. */
export interface Journal {
  /** Undefined for a run without a store. */
  readonly saved: Persistence | undefined;
  /** Long-term store of the session's store. */
  readonly longTerm: LongTermView | undefined;
  /** Outcomes of the current step's effects in this process by journal key, reused by the next attempt of a node. */
  readonly outcomes: Map<string, { readonly value: unknown } | { readonly error: unknown }>;
  /** Ledger entries of hooks since the superstep began; undefined before the first access. */
  ledger: LedgerBook | undefined;
  readonly world: World;
  readonly codec: Codec;
  readonly redactor: Redactor;
}
