/** Stored ids of threads: the id of the caller behind the prefix of the tenant. */
import { StatewrightError } from "@statewright/core";
import { checkId, createSha256, invalidOption } from "@statewright/core/adapter";
import type { Caller } from "../access/caller.ts";

/** Whose threads a caller reaches: those of the tenant, or only those of the caller. */
export type ThreadScope = "tenant" | "caller";

const tenantGrammar = /^[A-Za-z0-9_-]{1,40}$/;
const callerGrammar = /^[A-Za-z0-9_.:@-]{1,128}$/;
const maxWireLength = 80;

/** Throws `invalid_option` for a caller whose id or tenant is outside of the grammar. */
export function checkCaller({ id, tenant }: Caller): void {
  if (typeof id !== "string" || !callerGrammar.test(id))
    throw invalidOption({
      where: "authenticate",
      option: "id",
      expected: "1 to 128 of the characters A-Z a-z 0-9 _ . : @ -",
      got: id,
    });
  if (typeof tenant !== "string" || !tenantGrammar.test(tenant))
    throw invalidOption({
      where: "authenticate",
      option: "tenant",
      expected: "1 to 40 of the characters A-Z a-z 0-9 _ -",
      got: tenant,
    });
}

/**
 * Returns the prefix of the stored thread ids of a caller. No id of a caller reaches behind the prefix of another: a
 * tenant has no dot, and the prefix ends with the dot after the tenant. In the scope `caller` a hash of tenant and id
 * replaces the tenant.
 */
export function createThreadPrefix({ tenant, id }: Pick<Caller, "tenant" | "id">, scope: ThreadScope): string {
  if (scope === "tenant") return `t.${tenant}.`;
  const hash = createSha256();
  hash.add(new TextEncoder().encode(JSON.stringify([tenant, id])));
  return `t.${hash.finish().slice(0, 40)}.`;
}

/** Returns an id of the caller. Throws `invalid_id` for an id outside of the grammar, or of more than 80 characters. */
export function checkWireId(what: string, id: string): string {
  checkId(what, id);
  if (id.length <= maxWireLength) return id;
  throw new StatewrightError("invalid_id", {
    what: `the ${what} has ${id.length} characters`,
    next: `Use 1 to ${maxWireLength} of the characters A-Z a-z 0-9 _ . : -`,
  });
}

/** Creates the error for a thread that the caller does not have. Equal for missing threads and those of others. */
export function createUnknownThreadError(thread: string): StatewrightError {
  return new StatewrightError("unknown_thread", {
    what: `there is no thread "${thread}"`,
    next: "Check the id, or list the threads",
    place: { thread },
  });
}

/** Creates the error for a run that the caller does not have. Equal for missing runs and those of others. */
export function createUnknownRunError(run: string): StatewrightError {
  return new StatewrightError("unknown_run", {
    what: `there is no run "${run}"`,
    next: "Check the id, or list the runs of the thread",
  });
}
