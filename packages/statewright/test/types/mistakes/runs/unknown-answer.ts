/** A resume answers an interrupt that the graph does not declare. */
import { resume } from "statewright";
import { order, store } from "../shop.ts";

const context = { user: "ann" };
// @ts-expect-error Object literal may only specify known properties, but 'aprove' does not exist in type '{ readonly approve?: { readonly ok: boolean; }; readonly name?: string; } & EngineAnswers<"approve" | "name"> & { readonly [id: `${string}:${string}`]: unknown; readonly [key: `${string}.approve`]: unknown; readonly [key: `${string}.in_doubt`]: unknown; }'. Did you mean to write 'approve'?
export const handle = resume(order, { store, thread: "t", context, answers: { aprove: { ok: true } } });
