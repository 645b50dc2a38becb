// In place of the library's header: the emulated device has these itself.
#pragma once
