import { expect, test } from "@jest/globals";
import { cases } from "./cases.mjs";

cases(test, expect);
