/** Middleware that asks a model besides, with any model: one of ours, a language model of the AI SDK, or the name of one. */
import {
  type SaveMemoriesOptions as SaveWithModel,
  type SelectToolsOptions as SelectWithModel,
  type SummariseOptions as SummariseWithModel,
  saveMemories as saveWithModel,
  selectToolsByModel as selectWithModel,
  summarise as summariseWithModel,
} from "@statewright/agent";
import type { Middleware } from "@statewright/core";
import { type AnyModel, modelsFrom } from "./any-model.ts";

/** What `summarise` takes. */
export type SummariseOptions = Omit<SummariseWithModel, "model"> & { readonly model: AnyModel };

/** What `selectToolsByModel` takes. */
export type SelectToolsOptions = Omit<SelectWithModel, "model"> & { readonly model: AnyModel };

/** What `saveMemories` takes. */
export type SaveMemoriesOptions<Context = unknown> = Omit<SaveWithModel<Context>, "model"> & {
  readonly model?: AnyModel;
};

/** Send a summary in place of the older part of a conversation once a request outgrows the trigger; the state keeps it whole. */
export function summarise({ model, ...options }: SummariseOptions): Middleware {
  return summariseWithModel({ ...options, model: meant(model) });
}

/** Have a model pick the tools that are shown, once for each message of a person. */
export function selectToolsByModel({ model, ...options }: SelectToolsOptions): Middleware {
  return selectWithModel({ ...options, model: meant(model) });
}

/** Remember what is worth it when the agent has ended with an answer. */
export function saveMemories<Context = unknown>({
  model,
  ...options
}: SaveMemoriesOptions<Context>): Middleware<Context> {
  return saveWithModel({ ...options, ...(model === undefined ? {} : { model: meant(model) }) });
}

const meant = modelsFrom(undefined);
