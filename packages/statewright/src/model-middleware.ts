/** Middleware with auxiliary model calls, for any form of a model: `Model`, AI SDK language model, or name. */
import {
  type SaveMemoriesOptions as SaveWithModel,
  type SelectToolsOptions as SelectWithModel,
  type SummariseOptions as SummariseWithModel,
  saveMemories as saveWithModel,
  selectToolsByModel as selectWithModel,
  summarise as summariseWithModel,
} from "@statewright/agent/middleware";
import type { Middleware } from "@statewright/core";
import { type AnyModel, createModelResolver } from "./any-model.ts";

/** Options of `summarise`, with any form of a model. */
export type SummariseOptions = Omit<SummariseWithModel, "model"> & { readonly model: AnyModel };

/** Options of `selectToolsByModel`, with any form of a model. */
export type SelectToolsOptions = Omit<SelectWithModel, "model"> & { readonly model: AnyModel };

/** Options of `saveMemories`, with any form of a model. */
export type SaveMemoriesOptions<Context = unknown> = Omit<SaveWithModel<Context>, "model"> & {
  readonly model?: AnyModel;
};

/**
 * Replaces the older part of a conversation in model requests by a summary, once a request exceeds the trigger; the
 * state keeps all messages.
 */
export function summarise({ model, ...options }: SummariseOptions): Middleware {
  return summariseWithModel({ ...options, model: toModel(model) });
}

/** Lets a model select the tools advertised to the agent's model, once per user message. */
export function selectToolsByModel({ model, ...options }: SelectToolsOptions): Middleware {
  return selectWithModel({ ...options, model: toModel(model) });
}

/** Extracts and stores memories after an agent run with an answer. */
export function saveMemories<Context = unknown>({
  model,
  ...options
}: SaveMemoriesOptions<Context>): Middleware<Context> {
  return saveWithModel({ ...options, ...(model === undefined ? {} : { model: toModel(model) }) });
}

const toModel = createModelResolver(undefined);
