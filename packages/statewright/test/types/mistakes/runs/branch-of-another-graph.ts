/** A resume continues the branch of another graph. */
import { fork, resume } from "statewright";
import { order, returns, store } from "../shop.ts";

const branch = await fork(order, { store, thread: "t", at: 1, name: "other" });
// @ts-expect-error Type 'BranchName<"pay" | "ship">' is not assignable to type 'BranchName<"check">' with 'exactOptionalPropertyTypes: true'. Consider adding 'undefined' to the types of the target's properties.
export const handle = resume(returns, { store, thread: "t", branch });
