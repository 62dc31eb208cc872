// A note as people read it: what stands in a box of code can be copied.

import { copying } from "./chat/copying.js";

copying(document.querySelector("#talk"));
